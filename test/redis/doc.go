// Package redis compares the Redis protocol of sequins with a real redis-server that has the same data, and runs clients of
// several languages against it. Each client does the same and prints what it has read, as lines that the tests know.
package redis
