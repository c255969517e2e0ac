// Package manual tests the documentation: it runs its commands, compiles and runs its programs, follows
// its links, and compares its lists with the code.
package manual
