/** What is known of Anthropic's models by their names. */

/** What a model takes of a request. */
export interface Traits {
  /** How it is told to think: by a budget of tokens, or by an effort within which it decides itself. */
  readonly thinking: "budget" | "adaptive"
  /** Whether it takes `temperature` and `top_p`: both, one of them, or neither. */
  readonly sampling: "both" | "one" | "none"
  /** Whether it takes `output_config.format`. */
  readonly format: boolean
  /** Whether it goes on from an assistant message at the end. */
  readonly prefill: boolean
}

/** The traits of a model. A name without a version of Claude stands for a server that takes what the wire always had. */
export const traitsOf = (model: string): Traits => {
  const version = versionOf(model) ?? 400
  return {
    thinking: version >= 406 ? "adaptive" : "budget",
    sampling: version >= 407 ? "none" : version >= 401 ? "one" : "both",
    format: versionOf(model) === undefined || version >= 405,
    prefill: version < 406
  }
}

/** Whose reasoning a model can read: that of all Claudes, or only its own. */
export const familyOf = (model: string): string => (/claude/i.test(model) ? "claude" : model)

/** `claude-opus-4-6` is 406, `claude-3-7-sonnet-20250219` is 307, `claude-sonnet-4-20250514` is 400. */
const versionOf = (model: string): number | undefined => {
  const found = /claude-(?:[a-z]+-)?(\d{1,2})(?:[-.](\d{1,2}))?(?!\d)/i.exec(model)
  return found === null ? undefined : Number(found[1]) * 100 + Number(found[2] ?? 0)
}
