// Package single tests one whole node from outside: real processes of the real binary, with a
// local source of files that Hadoop wrote, asked over HTTP, signalled, killed, and given every
// kind of bad input that the design has an answer for.
package single
