/** A list from which anything can be taken out in one step, however long it is. */

/** Something that stands in a list. */
export interface Link<A> {
  readonly item: A
  /** The list's own: what stands before and after it, round in a ring through the list's end. */
  before: Link<A> | End<A>
  after: Link<A> | End<A>
}

interface End<A> {
  readonly item?: undefined
  before: Link<A> | End<A>
  after: Link<A> | End<A>
}

/** A list of its own ends. A `Map` is no substitute: to find its first key it walks over all that were deleted there. */
export interface LinkedList<A> {
  /** What was appended first of all that is still there. */
  readonly first: () => A | undefined
  readonly append: (item: A) => Link<A>
  /** Takes a link out of this list; it must stand in it. */
  readonly remove: (link: Link<A>) => void
  /** Puts a link of this list behind all others. */
  readonly moveToEnd: (link: Link<A>) => void
}

/** An empty list. */
export const make = <A>(): LinkedList<A> => {
  const end = {} as End<A>
  end.before = end
  end.after = end

  const remove = (link: Link<A>) => {
    link.before.after = link.after
    link.after.before = link.before
  }

  const attach = (link: Link<A>) => {
    link.before = end.before
    link.after = end
    end.before.after = link
    end.before = link
  }

  return {
    first: () => end.after.item,
    append: (item) => {
      const link: Link<A> = { item, before: end, after: end }
      attach(link)
      return link
    },
    remove,
    moveToEnd: (link) => {
      remove(link)
      attach(link)
    }
  }
}
