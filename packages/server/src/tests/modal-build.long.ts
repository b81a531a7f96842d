import { testCancelOnModal, testDemoOnModal } from "../testing/demo-modal.ts";

testDemoOnModal("with latency, limits and cut connections", []);
testDemoOnModal("with a sandbox that vanishes, and the server and the keeper killed", ["sandbox", "server", "keeper"]);
testCancelOnModal();
