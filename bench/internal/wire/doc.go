// Package wire sends requests over many connections from one thread, and takes the time of each.
//
// A client like net/http costs more than the servers under test. This one waits for all of its connections
// with one epoll, sends prepared requests, reads each answer with one system call and checks it. Closed
// loop: every connection sends its next request when it has its answer. Open loop ([Load.Rate]): requests
// are due at fixed times, independent of the server, and their time counts from when they were due and not
// from when a connection was free.
package wire
