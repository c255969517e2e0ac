// Package sequins holds no code: the packages below it do, and the command cmd/sequins puts them
// together. Its test holds the house to its plan: which package may import which, that each says what it
// owns, and that no test is ever skipped. ARCHITECTURE.md is that plan in prose.
package sequins
