import { SlipwayError } from "@slipway/contract";
import type { Dispatcher } from "undici";
import type { Timeouts } from "../settings/settings.ts";

/** An endpoint's answer. At least one byte of its body is here, or the body is empty. */
export interface Answer {
  readonly status: number;
  readonly contentType: string;
  readonly retryAfter: string | undefined;
  /** Passes on the body: what is here at once, then every chunk as it arrives. Call it once. */
  pipe(sink: Sink): void;
  /** Stops the clock of the idle timeout, too. */
  pause(): void;
  resume(): void;
  /** Drops the connection. The sink ends with the error. */
  abort(error: SlipwayError): void;
}

export interface Sink {
  data(chunk: Uint8Array): void;
  /** Called once. An error means that the body is incomplete. */
  end(error?: SlipwayError): void;
}

/** Collects a whole body, up to the limit. */
export function collect(answer: Answer, maxBytes: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Uint8Array[] = [];
    let bytes = 0;
    answer.pipe({
      data(chunk) {
        bytes += chunk.length;
        if (bytes <= maxBytes) return void chunks.push(chunk);
        const tooLong = new SlipwayError("invalid_answer", `the answer is over ${maxBytes} bytes long`);
        reject(tooLong);
        answer.abort(tooLong);
      },
      end: (error) => (error === undefined ? resolve(Buffer.concat(chunks)) : reject(error)),
    });
  });
}

export interface AnswerOptions {
  readonly provider: string;
  readonly timeouts: Timeouts;
  /** Its reason is a `SlipwayError`. */
  readonly signal: AbortSignal;
  readonly onSent: () => void;
  readonly resolve: (answer: Answer) => void;
  readonly reject: (error: SlipwayError) => void;
}

/** An answer on its way. Buffers chunks until it is piped. */
export class PendingAnswer implements Dispatcher.DispatchHandler {
  readonly #options: AnswerOptions;
  readonly #onAbort = () => this.#giveUp(this.#options.signal.reason as SlipwayError);
  readonly #held: Uint8Array[] = [];
  #controller: Dispatcher.DispatchController | undefined;
  #head: Pick<Answer, "status" | "contentType" | "retryAfter"> | undefined;
  #timer: NodeJS.Timeout | undefined;
  #sink: Sink | undefined;
  #answered = false;
  #paused = false;
  #ended: { readonly error: SlipwayError | undefined } | undefined;

  constructor(options: AnswerOptions) {
    this.#options = options;
    options.signal.addEventListener("abort", this.#onAbort, { once: true });
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#ended?.error !== undefined) return void controller.abort(this.#ended.error);
    this.#options.onSent();
    this.#startTimer(this.#options.timeouts.firstByteMs);
  }

  onResponseStart(_: Dispatcher.DispatchController, status: number, headers: Headers): void {
    const [contentType, retryAfter] = [header(headers, "content-type") ?? "", header(headers, "retry-after")];
    this.#head = { status, contentType, retryAfter };
  }

  onResponseData(_: Dispatcher.DispatchController, chunk: Uint8Array): void {
    if (this.#ended !== undefined) return;
    if (this.#sink !== undefined) {
      this.#timer?.refresh();
      this.#sink.data(chunk);
      return;
    }
    this.#held.push(chunk);
    if (this.#answered) return;
    this.#startTimer(this.#options.timeouts.idleMs);
    this.#answer();
  }

  onResponseEnd(): void {
    this.#finish(undefined);
  }

  onResponseError(_: Dispatcher.DispatchController, error: Error): void {
    this.#finish(brokenOff(this.#options.provider, error, this.#answered));
  }

  #answer(): void {
    if (this.#answered || this.#head === undefined) return;
    this.#answered = true;
    this.#options.resolve({
      ...this.#head,
      pipe: (sink) => {
        for (const chunk of this.#held.splice(0)) sink.data(chunk);
        this.#sink = sink;
        if (this.#ended !== undefined) sink.end(this.#ended.error);
      },
      pause: () => {
        this.#paused = true;
        this.#controller?.pause();
      },
      resume: () => {
        this.#paused = false;
        if (this.#ended !== undefined) return;
        this.#timer?.refresh();
        this.#controller?.resume();
      },
      abort: (error) => this.#giveUp(error),
    });
  }

  #startTimer(ms: number): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      if (this.#paused) return;
      this.#giveUp(new SlipwayError("model_timeout", `${this.#options.provider} sent nothing for ${ms} ms`));
    }, ms);
  }

  #giveUp(error: SlipwayError): void {
    if (this.#ended !== undefined) return;
    this.#finish(error);
    this.#controller?.abort(error);
  }

  #finish(error: SlipwayError | undefined): void {
    if (this.#ended !== undefined) return;
    this.#ended = { error };
    clearTimeout(this.#timer);
    this.#options.signal.removeEventListener("abort", this.#onAbort);
    if (this.#answered || error === undefined) {
      this.#answer();
      this.#sink?.end(error);
    } else {
      this.#options.reject(error);
    }
  }
}

type Headers = Readonly<Record<string, string | string[] | undefined>>;

function header(headers: Headers, name: string): string | undefined {
  const value = headers[name];
  return Array.isArray(value) ? value[0] : value;
}

function brokenOff(provider: string, cause: Error, answered: boolean): SlipwayError {
  const reason = (cause as NodeJS.ErrnoException).code ?? cause.name;
  if (answered) return new SlipwayError("stream_truncated", `${provider} broke off its answer (${reason})`, { cause });
  return new SlipwayError("model_unreachable", `${provider} cannot be reached (${reason})`, { cause });
}
