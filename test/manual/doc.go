// Package manual holds the tests of what the manual tells people to do: its commands are run, its programs
// compiled and run, its links followed, and its lists held against what they list.
package manual
