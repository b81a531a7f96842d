/** A file that seems to hold a secret. Never contains the secret itself. */
export interface SecretSign {
  readonly path: string;
  readonly kind: string;
  /** From 1; null: the file's name is the sign. */
  readonly line: number | null;
}

const telling: readonly (readonly [kind: string, name: RegExp])[] = [
  ["environment file", /^\.env(\.(?!example$|sample$|template$|dist$|defaults$|schema$)[\w-]+)*$/i],
  ["private key", /^id_(rsa|dsa|ecdsa|ed25519)$/],
  ["key store", /\.(p12|pfx|jks|keystore|kdbx)$/i],
  ["password file", /^(\.netrc|\.pgpass|\.htpasswd|\.git-credentials)$/],
];

const patterns: readonly (readonly [kind: string, text: RegExp])[] = [
  ["private key", /-----BEGIN [A-Z0-9 ]*PRIVATE KEY( BLOCK)?-----/],
  ["AWS key", /\b(AKIA|ASIA)[0-9A-Z]{16}\b/],
  ["GitHub token", /\b(gh[pousr]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{40,})/],
  ["GitLab token", /\bglpat-[A-Za-z0-9_-]{20,}/],
  ["npm token", /\bnpm_[A-Za-z0-9]{36}\b|:_authToken=[^\s$]{16,}/],
  ["Google key", /\bAIza[0-9A-Za-z_-]{35}\b/],
  ["Slack token", /\bxox[abeoprs]-[0-9A-Za-z-]{20,}/],
  ["Stripe key", /\b[rs]k_live_[0-9A-Za-z]{20,}/],
  ["model key", /\bsk-(ant-|proj-|or-)?[A-Za-z0-9_-]{32,}/],
];

/** Finds signs that the new text of a file has and the old one does not. */
export function secretSigns(path: string, before: string, after: string): SecretSign[] {
  const name = path.slice(path.lastIndexOf("/") + 1);
  const byName = telling.filter(([, pattern]) => before === "" && after !== "" && pattern.test(name));
  const known = new Set(before.split("\n"));
  const byLine = after.split("\n").flatMap((text, index) => {
    if (known.has(text)) return [];
    // Bounds the search of very long lines, as in minified files.
    const found = patterns.find(([, pattern]) => pattern.test(text.slice(0, 20_000)));
    return found === undefined ? [] : [{ path, kind: found[0], line: index + 1 }];
  });
  return [...byName.map(([kind]) => ({ path, kind, line: null })), ...byLine];
}
