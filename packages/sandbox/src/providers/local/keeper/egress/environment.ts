export interface ProxyEnvironmentOptions {
  /** Where the egress listens inside the sandbox, on its loopback. */
  readonly port: number;
  /** A file inside the sandbox with the public authorities and the egress's own: several programs read nothing besides. */
  readonly caBundlePath: string;
}

/** Variables that lead the usual programs through the egress and have them trust it. */
export function proxyEnvironment({ port, caBundlePath }: ProxyEnvironmentOptions): Record<string, string> {
  // Not socks5h: Python's httpx fails to start with it unless an extra package is there.
  const proxy = `http://127.0.0.1:${port}`;
  // Without brackets: Python's httpx does not start with them. Node's fetch and Python's urllib look for `[::1]`; the agent leads
  // those that ask the egress for it back to the sandbox.
  const direct = "localhost,127.0.0.1,::1";
  return {
    HTTP_PROXY: proxy,
    http_proxy: proxy,
    HTTPS_PROXY: proxy,
    https_proxy: proxy,
    ALL_PROXY: proxy,
    all_proxy: proxy,
    NO_PROXY: direct,
    no_proxy: direct,
    // Node's own fetch and http know the variables above only with this one.
    NODE_USE_ENV_PROXY: "1",
    npm_config_proxy: proxy,
    npm_config_https_proxy: proxy,
    npm_config_noproxy: direct,
    YARN_HTTP_PROXY: proxy,
    YARN_HTTPS_PROXY: proxy,
    NODE_EXTRA_CA_CERTS: caBundlePath,
    SSL_CERT_FILE: caBundlePath,
    CURL_CA_BUNDLE: caBundlePath,
    GIT_SSL_CAINFO: caBundlePath,
    PIP_CERT: caBundlePath,
    REQUESTS_CA_BUNDLE: caBundlePath,
    npm_config_cafile: caBundlePath,
    YARN_HTTPS_CA_FILE_PATH: caBundlePath,
    CARGO_HTTP_CAINFO: caBundlePath,
    DENO_CERT: caBundlePath,
    AWS_CA_BUNDLE: caBundlePath,
  };
}
