// Reads from sequins with ioredis, and prints what it has read: see clients_test.go.
import Redis from "ioredis";

const r = new Redis({ host: process.argv[2], port: Number(process.argv[3]), connectionName: "test" });
const text = (list) => list.map((v) => v ?? "nil").join(",");
console.log("get", await r.get("words/key-001"));
console.log("absent", (await r.get("words/nokey")) === null ? "None" : "?");
console.log("mget", text(await r.mget("words/key-001", "words/nokey", "words/key-002")));
console.log("hget", await r.hget("words", "key-003"));
console.log("hmget", text(await r.hmget("words", "key-003", "nokey")));
console.log("exists", await r.exists("words/key-001", "words/nokey"), "strlen", await r.strlen("words/large"));
const p = r.pipeline();
for (let i = 0; i < 300; i++) p.get("words/key-" + String(i).padStart(3, "0"));
console.log("pipeline", (await p.exec()).filter(([err, v], i) => !err && v === "value-" + i).length);
console.log("large", (await r.get("words/large")) === "0123456789".repeat(20000) ? "True" : "False");
let n = 0;
for await (const some of r.hscanStream("words", { match: "key-*", count: 77 })) n += some.length / 2;
console.log("scan", n, "hlen", await r.hlen("words"));
await r.set("words/x", "y").catch((err) => err.message.startsWith("ERR unknown command") && console.log("write refused"));
console.log("ping", (await r.ping()) === "PONG" ? "True" : "False");
r.disconnect();
