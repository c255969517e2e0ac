// Package sequins contains no code, only the test of the architecture: which package may import which,
// that each package comment names what the package owns, and that no test is skipped. ARCHITECTURE.md
// describes the packages, and node/daemon connects those of a node.
package sequins
