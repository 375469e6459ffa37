package varve

import (
	"context"
	"iter"
)

// RefusedEdit is a file that somebody left as it cannot be taken over: not valid, with the
// id of another document, over a limit, or not to be read. It stays as it is, and what was
// there before it is served as far as log and archive have it.
type RefusedEdit struct {
	Path string // relative to the store
	Err  error  // why
}

// RefusedEdits yields the files that cannot be taken over as they are now, no matter which process
// left them or was told. It looks at the size and the time of every file, and reads those that are
// not what the index has. An error ends it, that of ctx among them.
func (ad Admin) RefusedEdits(ctx context.Context) iter.Seq2[RefusedEdit, error] {
	return func(yield func(RefusedEdit, error) bool) {
		for e, err := range ad.st.edits.Refused(ctx) {
			if !yield(RefusedEdit(e), err) {
				return
			}
		}
	}
}

// Drift is how files and index differ, by name: what somebody did to the folder
// while nobody had the store open.
type Drift struct {
	Checked  bool     // the comparison is done
	Missing  []string // ids whose file is gone
	Stranger []string // files in the folder that no document of its kind has
	Count    int      // of both; the lists hold the first of them
	Restored []string // ids of those missing whose file was put back, by auto_repair
}
