import process from "node:process";
import { ModalClient } from "modal";
import type { ModalSettings } from "../../modal-settings.ts";

/** Modal's client for these settings. */
export async function openClient(settings: ModalSettings): Promise<Disposable & { readonly client: ModalClient }> {
  const { tokenId, tokenSecret, environment } = settings;
  const client = at(
    settings.apiBase,
    () => new ModalClient({ tokenId, tokenSecret, ...(environment && { environment }) }),
  );
  return { client, [Symbol.dispose]: () => client.close() };
}

/** The client takes its server only from the environment, and reads that when it is made. */
function at<T>(apiBase: string, make: () => T): T {
  const before = process.env["MODAL_SERVER_URL"];
  process.env["MODAL_SERVER_URL"] = apiBase;
  try {
    return make();
  } finally {
    if (before === undefined) delete process.env["MODAL_SERVER_URL"];
    else process.env["MODAL_SERVER_URL"] = before;
  }
}
