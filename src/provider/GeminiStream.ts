/** Gemini's streamGenerateContent: an answer in pieces of the same shape as a whole one. */
import type * as EventReader from "./EventReader.ts"
import * as GeminiAnswer from "./GeminiAnswer.ts"
import * as GeminiPartialArgs from "./GeminiPartialArgs.ts"
import * as Json from "./Json.ts"
import * as Reply from "./Reply.ts"
import * as StreamDraft from "./StreamDraft.ts"
import type { ToolNames } from "./ToolNames.ts"

/** A piece as far as it is looked at. Nobody promises the shape: what does not fit throws, and is malformed. */
interface StreamChunk {
  readonly candidates?: unknown
  readonly usageMetadata?: unknown
  readonly modelVersion?: unknown
  readonly responseId?: unknown
  readonly message?: unknown
  readonly detail?: unknown
}

interface Candidate {
  readonly content?: { readonly parts?: ReadonlyArray<Part> | null } | null
  readonly finishReason?: unknown
}

interface Part {
  readonly text?: unknown
  readonly thought?: unknown
  readonly thoughtSignature?: unknown
  readonly functionCall?: GeminiPartialArgs.CallPiece | null
}

/** Who is asked, and what was asked. */
export interface Asked {
  readonly provider: string
  readonly names: ToolNames
}

const take = (draft: StreamDraft.StreamDraft, event: unknown, asked: Asked): void => {
  const chunk = event as StreamChunk
  const isForeign = chunk.candidates === undefined && (chunk.message !== undefined || chunk.detail !== undefined)
  if (isForeign || Reply.holdsError(chunk)) {
    // Once the model has stopped, its answer is whole, whatever breaks behind it.
    if (draft.stopped === undefined) draft.error = chunk
    return
  }
  draft.model ??= Json.text(chunk.modelVersion)
  draft.requestId ??= Json.text(chunk.responseId)
  // Every piece says the usage so far; what a later one leaves out stays.
  if (chunk.usageMetadata) draft.usage = { ...(draft.usage as object), ...GeminiAnswer.countsIn(chunk.usageMetadata) }
  draft.blockedPrompt ??= GeminiAnswer.blockReasonOf(chunk)
  if (draft.blockedPrompt !== undefined) draft.stopped ??= draft.blockedPrompt
  const candidate = GeminiAnswer.candidateOf(chunk) as Candidate | undefined
  for (const part of candidate?.content?.parts ?? []) takePart(draft, part, asked)
  draft.stopped ??= GeminiAnswer.stoppedOf(candidate?.finishReason)
}

const takePart = (draft: StreamDraft.StreamDraft, part: Part, { provider, names }: Asked): void => {
  if (part.functionCall) takeCall(draft, part.functionCall, names)
  else if (part.thought === true) StreamDraft.addReasoning(draft, part.text)
  else StreamDraft.addText(draft, part.text)
  const marks = GeminiAnswer.markOf(part, part.functionCall ? draft.calls.at(-1)?.index : undefined)
  for (const { id = "", thoughtSignature = "" } of marks) {
    StreamDraft.keep(draft, 64 + id.length + thoughtSignature.length)
  }
  const earlier = draft.opaque?.value as Array<GeminiAnswer.Mark> | undefined
  if (earlier === undefined) draft.opaque = GeminiAnswer.opaqueOf(provider, marks)
  else earlier.push(...marks)
}

/** A call comes whole, unless the request asked for its arguments in pieces: then only the first one names it. */
const takeCall = (draft: StreamDraft.StreamDraft, piece: GeminiPartialArgs.CallPiece, names: ToolNames): void => {
  const name = Json.text(piece.name)
  const call = name === undefined ? draft.calls.at(-1) : StreamDraft.addCall(draft, undefined)
  if (call === undefined) return
  call.id ??= Json.text(piece.id)
  call.name ??= name && names.own(name)
  GeminiPartialArgs.take(draft, call, piece)
}

/** How the pieces of this wire are read. There is no terminator: the finish reason is the end. */
export const wireOf = (asked: Asked, changes: ReadonlyArray<string>): EventReader.Wire => ({
  take: (draft, event) => take(draft, event, asked),
  usage: GeminiAnswer.usageOf,
  answer: (reply) => GeminiAnswer.read(reply, asked.names),
  changes
})
