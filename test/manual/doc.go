// Package manual tests the documentation: it runs its commands, compiles and runs its programs, follows
// its links, and compares its lists with the code. It finds the commands and blocks of a page for other tests, too.
package manual
