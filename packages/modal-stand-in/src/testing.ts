import { ModalClient } from "modal";
import { type ModalStandIn, type ModalStandInOptions, startModalStandIn } from "./stand-in.ts";

/** The unmodified client, and the stand-in that it takes for Modal. */
export interface Setup extends AsyncDisposable {
  readonly standIn: ModalStandIn;
  readonly modal: ModalClient;
}

export async function setUp(options: ModalStandInOptions = {}): Promise<Setup> {
  const standIn = await startModalStandIn(options);
  const modal = connectTo(standIn);
  return {
    standIn,
    modal,
    async [Symbol.asyncDispose]() {
      modal.close();
      await standIn[Symbol.asyncDispose]();
    },
  };
}

/** The client reads its server's address from the environment alone, when it is made. */
export function connectTo(
  { url, tokenId, tokenSecret }: Pick<ModalStandIn, "url" | "tokenId" | "tokenSecret">,
  variables: Readonly<Record<string, string>> = {},
): ModalClient {
  const wanted = { MODAL_SERVER_URL: url, MODAL_CONFIG_PATH: "/dev/null", ...variables };
  const before = { ...process.env };
  Object.assign(process.env, wanted);
  try {
    return new ModalClient({ tokenId, tokenSecret, logger: silent });
  } finally {
    for (const name of Object.keys(wanted)) {
      if (before[name] === undefined) delete process.env[name];
      else process.env[name] = before[name];
    }
  }
}

const silent = { debug() {}, info() {}, warn() {}, error() {} };
