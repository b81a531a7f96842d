import { CreateBucketCommand, S3Client } from "@aws-sdk/client-s3";
import { afterAll, beforeAll } from "vitest";
import { type S3Server, startS3Server } from "../testing/s3-server.ts";
import { describeObjectStorage } from "./conformance/suite.ts";
import { openS3Storage } from "./s3.ts";

let server: S3Server;
beforeAll(async () => {
  server = await startS3Server();
});
afterAll(async () => await server[Symbol.asyncDispose]());

async function bucket(name: string) {
  const { endpoint, keyId, secret } = server;
  const client = new S3Client({
    endpoint,
    region: "us-east-1",
    forcePathStyle: true,
    credentials: { accessKeyId: keyId, secretAccessKey: secret },
  });
  await client.send(new CreateBucketCommand({ Bucket: name }));
  return { endpoint, region: "us-east-1", keyId, secret, sessionToken: undefined, bucket: name };
}

describeObjectStorage("a bucket", async () => await openS3Storage(await bucket("conformance")));
