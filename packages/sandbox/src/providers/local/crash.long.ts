import { testKills } from "./crash-testing.ts";

testKills(50);
