// Package client reads from nodes of sequins. A Client asks a node that holds the key's partition directly, asks another
// one when that is late or fails, and returns what the first usable answer has. A Node asks the node that somebody has
// named, and its errors say what to do. Both send requests in exchange.go.
//
// A call of a Client passes through these parts:
//
//	Client.Get, MultiGet  check the arguments; a Session adds the version that it has seen (session.go)
//	database              the map from keys to nodes, GET /<db>?partitions, refreshed in the background (partitions.go)
//	call                  rounds of attempts until there is an answer or the context ends (call.go)
//	route                 the order in which nodes are asked: holders in Options.Zone first, failing nodes last (route.go)
//	attempt               one request to one node, and the checks of its answer (attempt.go)
//
// The map only decides which node is asked first. A node fetches from other nodes what it does not hold, so a map
// that is missing, out of date or wrong costs time and never changes a value. Without a map, and when the nodes that
// it names do not answer, the client asks the addresses of Options.Addrs.
//
// A request that is later than 95 % of the recent ones is sent to a second node as well, within Options.HedgeBudget; if that
// would leave Options.Zone, one that is later than 99.5 %.
// Answers are not trusted: an answer that is too large, incomplete, without a version or of an older version than the
// session has seen is an error of that node, and another node is asked.
package client
