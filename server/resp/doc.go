// Package resp is the front end for clients of Redis: it answers the commands of Redis that read with package reads, in the
// protocols RESP2 and RESP3. docs/REDIS.md describes the commands.
//
// Server.Serve accepts connections and runs conn.serve for each. That receives bytes and answers, in a round, all commands
// that have arrived:
//
//	parser.next     takes the bytes apart into commands, whose arguments stay where they are (parser.go)
//	conn.execute    checks name, number of arguments and rights (commands.go)
//	conn.addRead    adds a read to the reads before it if it is of the same db (reading.go)
//	conn.lookUp     looks all of these keys up together, with reads.Read.DoBatch, or a single one with Do (reading.go, stream.go)
//	replies         renders the answers, which are sent in one write (reply.go)
//
// So a pipeline is a batch: the keys that a client has sent together are looked up together, and in one version. A round has
// pooled state; a connection that waits holds a buffer for commands and little else.
//
// HSCAN and SCAN (scan.go) read pages of records in order; cursors are numbers of positions (cursors.go).
//
// A key names its db, as in db/key, unless the client has selected one (session.go). A read that has no answer is an error
// and never null: null means that the version that was read does not have the key.
//
// Commands are limited in memory, see limits. What the parser does not understand, or what is larger, ends the connection with
// an error. A client must send a command within Options.Read and receive 64 KiB of its answers within Options.Write.
package resp
