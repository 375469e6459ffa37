package notes

import (
	"context"
	"fmt"

	varve "github.com/varve-db/varve"
)

// writing writes, edits, renames and deletes notes until it is killed.
func writing(ctx context.Context, _, dir string) error {
	st, err := varve.Open(ctx, dir, &varve.Options{NoBackground: true})
	if err != nil {
		return err
	}
	ns := st.Notes()
	for i := 0; err == nil; i++ {
		path := fmt.Sprintf("f%d/%d.md", i%3, i)
		if _, err = ns.Write(ctx, path, fmt.Appendf(nil, "text %d", i)); err != nil {
			break
		}
		switch i % 4 {
		case 1:
			_, err = ns.Edit(ctx, path, "text", "edited")
		case 2:
			_, err = ns.Rename(ctx, path, "moved/"+path)
		case 3:
			err = ns.Delete(ctx, path)
		}
		if err == nil && i%7 == 0 {
			err = st.Flush(ctx)
		}
		fmt.Println(i)
	}
	return err
}
