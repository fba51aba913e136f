/** The writing of a request, which may hold what no wire can say. */
import { Either, Function } from "effect"
import { InvalidRequestError } from "../model/LlmError.ts"

/**
 * A request, written. What cannot be written, as a schema that holds itself or is nested too deep, is an
 * `InvalidRequestError` and no defect.
 */
export const of = <A>(
  provider: string,
  write: () => Either.Either<A, InvalidRequestError>
): Either.Either<A, InvalidRequestError> => {
  const message = `${provider}: the request was not sent: it cannot be written as JSON`
  const written = Either.try({ try: write, catch: () => new InvalidRequestError({ provider, message }) })
  return Either.flatMap(written, Function.identity)
}
