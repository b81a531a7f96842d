import { SlipwayError } from "@slipway/contract";
import { parseS3, type S3Place } from "../objects/settings.ts";

/** Where versions of a tree are kept: below the storage's root, or at a place in S3 that a user names. */
export type Place =
  | { readonly kind: "workspace"; readonly name: string }
  | { readonly kind: "volume"; readonly user: string; readonly project: string }
  | { readonly kind: "shared" }
  | ({ readonly kind: "s3" } & S3Place);

/** Ids become directories: no dots, no slashes, nothing that a shell or a URL minds. */
const idPattern = /^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/;
const forms = "a name such as my-app, projects/<user>/<project>, shared, or s3://bucket/prefix";

/** `my-app`, `projects/ann/shop`, `shared`, `s3://bucket/prefix` */
export function parsePlace(text: string): Place {
  if (text.startsWith("s3://")) {
    const mistakes: string[] = [];
    const place = parseS3(text, (mistake) => mistakes.push(mistake));
    if (mistakes.length > 0) throw new SlipwayError("invalid_request", `${mistakes.join(" ")}.`);
    return { kind: "s3", ...place };
  }
  if (text === "shared") return { kind: "shared" };
  const [first = "", user, project, ...rest] = text.split("/");
  if (first === "projects" && user !== undefined && project !== undefined && rest.length === 0) {
    return { kind: "volume", user: checkId("user", user), project: checkId("project", project) };
  }
  if (user !== undefined || first === "projects") {
    throw new SlipwayError("invalid_request", `${JSON.stringify(text)} is no place in the storage: give ${forms}.`);
  }
  return { kind: "workspace", name: checkId("workspace", first) };
}

export function placeText(place: Place): string {
  if (place.kind === "workspace") return place.name;
  if (place.kind === "shared") return "shared";
  if (place.kind === "volume") return `projects/${place.user}/${place.project}`;
  return `s3://${place.bucket}${place.prefix === "" ? "" : `/${place.prefix}`}`;
}

/** The directory below the storage's root. */
export function placeDirectory(place: Exclude<Place, { kind: "s3" }>): string {
  return place.kind === "workspace" ? `workspaces/${place.name}` : placeText(place);
}

function checkId(what: string, id: string): string {
  if (idPattern.test(id)) return id;
  const rule = "1 to 64 letters, digits, - and _, of which the first is a letter or a digit";
  throw new SlipwayError("invalid_request", `${what} ${JSON.stringify(id)}: expected ${rule}.`);
}
