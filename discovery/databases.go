package discovery

import (
	"context"
	"fmt"
	"slices"

	"sequins/source"
)

// Databases lists the databases of a source, which has a name for errors. A source that lists none of the served
// databases is an error: most likely it is not mounted.
func Databases(ctx context.Context, src source.Source, name string, served []string) (source.Names, error) {
	found, err := source.ListNames(ctx, src, "")
	if err != nil || len(served) == 0 || slices.ContainsFunc(served, func(db string) bool { return slices.Contains(found.Names, db) }) {
		return found, err
	}
	return source.Names{}, fmt.Errorf("%s lists none of the %d databases that are served here (%s, …): is it mounted?", name, len(served), served[0])
}
