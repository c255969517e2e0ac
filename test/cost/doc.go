// Package cost measures what the first build of sequins costs, by dependency, and holds it to the table in costs.tsv: a dependency does not become
// expensive unnoticed.
package cost
