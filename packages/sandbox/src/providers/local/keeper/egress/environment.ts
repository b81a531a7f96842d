export interface ProxyEnvironmentOptions {
  /** Where the egress listens on the sandbox's loopback. */
  readonly port: number;
  /** A file inside with the public authorities and the egress's own: several programs read no other. */
  readonly caBundlePath: string;
}

/** Variables that make the usual programs use and trust the egress. */
export function proxyEnvironment({ port, caBundlePath }: ProxyEnvironmentOptions): Record<string, string> {
  return {
    // Not socks5h: Python's httpx needs an extra package for that.
    ...each(proxyVariables, `http://127.0.0.1:${port}`),
    // Without brackets: Python's httpx does not start with them. Node's fetch and Python's urllib look for `[::1]`;
    // the agent leads requests for it back to the sandbox.
    ...each(directVariables, "localhost,127.0.0.1,::1"),
    // Node's fetch and http ignore the variables above without this one.
    NODE_USE_ENV_PROXY: "1",
    ...each(authorityVariables, caBundlePath),
  };
}

const proxyVariables = [
  ...["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"],
  ...["npm_config_proxy", "npm_config_https_proxy", "YARN_HTTP_PROXY", "YARN_HTTPS_PROXY"],
];
const directVariables = ["NO_PROXY", "no_proxy", "npm_config_noproxy"];
const authorityVariables = [
  ...["NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO", "PIP_CERT", "REQUESTS_CA_BUNDLE"],
  ...["npm_config_cafile", "YARN_HTTPS_CA_FILE_PATH", "CARGO_HTTP_CAINFO", "DENO_CERT", "AWS_CA_BUNDLE"],
];

function each(names: readonly string[], value: string): Record<string, string> {
  return Object.fromEntries(names.map((name) => [name, value]));
}
