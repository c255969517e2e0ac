// Package cost holds what the first build of sequins costs, by dependency, to the table in costs.tsv, which it measures when it is told to: a
// dependency does not become expensive unnoticed.
package cost
