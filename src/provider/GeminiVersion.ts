/** What the versions of Gemini differ in, by the name of the model. */

/**
 * Whether a model is older than the third version. Such models take a budget of thoughts but no level, refuse a form of
 * the answer beside tools, and want no signature on calls that no Gemini made.
 */
export const isBeforeThree = (model: string): boolean => /(?:^|\/)gemini-[12]\b/.test(model)

/** The signature that Google documents for calls that no Gemini made. */
export const foreignSignature = "skip_thought_signature_validator"

/** Whether a model is known to refuse calls without a signature. */
export const isKnownToSign = (model: string): boolean => /gemini/i.test(model) && !isBeforeThree(model)
