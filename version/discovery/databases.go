package discovery

import (
	"context"
	"fmt"

	"sequins/source"
)

// Databases lists the databases of a source, which has a name for errors. A source without any, while some are served, is
// an error: most likely it is not mounted.
func Databases(ctx context.Context, src source.Source, name string, served []string) (source.Names, error) {
	found, err := source.ListNames(ctx, src, "")
	if err == nil && len(found.Names) == 0 && len(served) > 0 {
		err = fmt.Errorf("%s lists none of the %d databases that are served here (%s, …), and no other: is it mounted?", name, len(served), served[0])
	}
	return found, err
}
