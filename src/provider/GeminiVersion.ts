/** What the versions of Gemini differ in, by the name of the model. */

/**
 * Whether a model is older than the third version. Such models take a budget of thoughts but no level, refuse a form of
 * the answer beside tools, and want no signature on calls that no Gemini made.
 */
export const isBeforeThree = (model: string): boolean => /(?:^|\/)gemini-[12]\b/.test(model)
