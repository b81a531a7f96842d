const maxBodyBytes = 16 * 1024;

/** A failure that whoever asked is to know of. */
export class HttpError extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

export async function readJson(request) {
  const chunks = [];
  let bytes = 0;
  for await (const chunk of request) {
    bytes += chunk.length;
    if (bytes > maxBodyBytes) throw new HttpError(413, "That is too long.");
    chunks.push(chunk);
  }
  if (bytes === 0) return {};
  try {
    const value = JSON.parse(Buffer.concat(chunks).toString());
    if (typeof value === "object" && value !== null) return value;
  } catch {}
  throw new HttpError(400, "The request is no JSON object.");
}

export function sendJson(response, status, value) {
  if (value === undefined) return response.writeHead(status).end();
  const body = JSON.stringify(value);
  return response.writeHead(status, { "content-type": "application/json; charset=utf-8" }).end(body);
}
