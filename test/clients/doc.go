// Package clients tests the clients of Go, Python and Java against real nodes, and compares what they read.
package clients
