// Package extsort sorts records by key in bounded memory.
//
// [Sorter.Add] collects records in an arena outside of Go's heap. When it is full, they are sorted and written to a run, a
// temporary file of records in ascending order, whose checksums stay in memory. [Sorter.Merge] merges the runs and
// yields each key once. If all records fit into memory, nothing is written.
package extsort
