import { errorAnswerSchema, isErrorCode, SlipwayError } from "@slipway/contract";

export interface Outgoing {
  readonly method: "GET" | "POST" | "PATCH" | "DELETE";
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** Answers with the head of the answer; fails as the platform does when there is no server. */
export type Transport = (request: Outgoing) => Promise<Response>;

export function overNetwork(url: string, token: string): Transport {
  return ({ method, path, headers, body, signal }) =>
    fetch(new URL(path, url), {
      method,
      headers: { ...headers, authorization: `Bearer ${token}` },
      // The token is for this server alone.
      redirect: "error",
      ...(body !== undefined && { body }),
      ...(signal !== undefined && { signal }),
    });
}

/** Answers that are none of the server's own errors. */
export async function send(transport: Transport, request: Outgoing): Promise<Response> {
  let answer: Response;
  try {
    answer = await transport(request);
  } catch (cause) {
    throw failureOf(cause, request.signal);
  }
  if (answer.ok) return answer;
  throw await refusalOf(answer);
}

/** What went wrong on the way. */
export function failureOf(cause: unknown, signal: AbortSignal | undefined): SlipwayError {
  if (cause instanceof SlipwayError) return cause;
  if (signal?.aborted) return new SlipwayError("aborted", "the call was aborted", { cause });
  const { code, message } = (cause instanceof Error ? (cause.cause ?? cause) : {}) as NodeJS.ErrnoException;
  return new SlipwayError("server_unavailable", `the server does not answer: ${code ?? message}`, { cause });
}

async function refusalOf(answer: Response): Promise<SlipwayError> {
  const body = errorAnswerSchema.safeParse(await answer.json().catch(() => undefined));
  if (body.success) return errorOf(body.data.error);
  return new SlipwayError("internal", `the server answers with status ${answer.status} and without a reason`);
}

/** Codes that this version does not know are told in the message. */
export function errorOf({ code, message }: { readonly code: string; readonly message: string }): SlipwayError {
  return isErrorCode(code) ? new SlipwayError(code, message) : new SlipwayError("internal", `${code}: ${message}`);
}
