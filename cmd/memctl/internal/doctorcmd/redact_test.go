package doctorcmd

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/varve-db/varve"
)

// TestRedactNames: a name with the signs that end the parts of a message is hidden as a whole, and the reason behind it
// is not.
func TestRedactNames(t *testing.T) {
	t.Parallel()
	full := errors.New("no space left on device")
	r := newRedactor("/srv/canarystore", func(string) string { return "" })
	for _, name := range []string{"canary: canary", "canary; canary", "canary → canary", "canary, canary) canary",
		"canary 'canary' canary", "it's canary", "canary\ncanary", "canary:canary", ": canary", `canary" canary`,
		"canary: no space left on device: canary"} {
		for _, c := range []struct {
			err  error
			want string // what is left
		}{
			{fmt.Errorf("writing notes/%s: %w", name, full), "writing notes/…: no space left on device"},
			{&fs.PathError{Op: "open", Path: "/mnt/" + name, Err: full}, "open …: no space left on device"},
			{fmt.Errorf("moving /mnt/%s: %w", name, full), "moving /…: no space left on device"},
			{fmt.Errorf("reading notes/%s: %w: %w", name, varve.ErrCorrupt, full),
				"reading notes/…: corrupt: no space left on device"},
			{fmt.Errorf("%w: notes/%s", full, name), "no space left on device: notes/…"},
			{fmt.Errorf("memories/%s is not valid", name), "memories/…"},
			{errors.Join(fmt.Errorf("notes/%s: %w", name, full), full),
				"notes/…: no space left on device no space left on device"},
			{&varve.CorruptionError{Path: "notes/" + name, Offset: 7, Err: full},
				"damaged: … at byte 7: no space left on device"},
			{fmt.Errorf("the store's note %q and the user's: %w", name, full), `the store's note "…" and the user's: no space`},
			{fmt.Errorf("run memctl note cat '%s', the file's owner: %w", strings.ReplaceAll(name, "'", `'\''`), full),
				"run memctl note cat '…', the file's owner: no space"},
		} {
			got := r.err(c.err)
			if strings.Contains(got, "canary") || !strings.HasPrefix(got, c.want) {
				t.Errorf("%q: %q, want %q", c.err, got, c.want)
			}
		}
	}
}
