// Package gate decides whether a content of a database may be served: it compares figures of its blocks with the rules of the database, so that a
// batch job that has failed quietly does not reach the readers.
//
// Measure reads the figures of the blocks on this node. A Report of them is published to the other nodes, with rules or without. Judge is a pure
// function of these measures, the reports of the other nodes, the rules and the totals of the content that is served: the same Facts lead to the same
// Verdict. Until it is Passed, the node neither advertises the content nor switches to it. docs/design/CONTENT.md has the order of the reasons.
//
// Nothing here keeps state, starts a goroutine or reads a clock. What a node remembers is a Finding, which the caller keeps.
package gate
