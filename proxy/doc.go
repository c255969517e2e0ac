// Package proxy fetches keys of partitions that this node does not hold from other nodes, with
// hedged requests. It knows neither versions nor the cluster: a Query names the peers and the
// version.
//
// Client.Fetch picks a peer (race.next: healthy peers in this node's zone in random order, then the
// other healthy ones, then failing ones) and sends it the request on the caller's goroutine, over an
// open idle connection, and waits for one stage timeout. Nearly every request ends there: no goroutine, no timer, one allocation. Otherwise
// race.run takes over: each attempt runs on its own goroutine, another attempt starts when the
// stage timeout expires or an attempt fails, and the first usable answer wins. An answer of up to
// 64 KiB is usable when it has arrived completely, so a peer that breaks off in the middle counts
// as failed. A larger answer is usable when its header and a prefix of its body have arrived; the
// Answer's Body streams the rest.
//
// A losing attempt releases its own connection. It stops when the race ends: a complete small
// answer leaves the connection reusable, otherwise the connection is closed. A connection that is
// still being opened is kept as idle.
//
// Each peer (peer.go) has a bounded number of connections, closes those that are idle for idleTime,
// and keeps a moving average of the cost of its attempts. Data from a peer (header.go, conn.go) is
// treated as hostile: a header is limited to 8 KiB, an answer without a length is refused, and a
// connection with surplus or unsolicited bytes is closed.
package proxy
