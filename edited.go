package varve

import (
	"context"
	"iter"
)

// RefusedEdit is a file whose edit cannot be adopted: it is not valid, has the id of another document, exceeds a limit,
// or cannot be read. The store does not change the file. Reads return the previous version as long as the log or the
// archive has it.
type RefusedEdit struct {
	Path string // relative to the store
	Err  error  // reason why the edit cannot be adopted
}

// RefusedEdits yields the files whose current content cannot be adopted, no matter which process wrote the files or
// noticed the edits. It checks the size and the time of every file, and reads the files whose size or time differs
// from the index. An error, including the error of ctx, is the last value.
func (ad Admin) RefusedEdits(ctx context.Context) iter.Seq2[RefusedEdit, error] {
	return func(yield func(RefusedEdit, error) bool) {
		for e, err := range ad.st.inner.Adopter.Refused(ctx) {
			if !yield(RefusedEdit(e), err) {
				return
			}
		}
	}
}

// Drift reports how the names of the files differ from the index. Such differences are changes made to the folder while
// no process had the store open.
type Drift struct {
	Checked  bool     // whether files and index were compared; if not, the other fields are empty
	Missing  []string // ids whose file is missing
	Stranger []string // files in the folder that belong to no document
	Count    int      // total of missing ids and strange files; Missing and Stranger list only the first ones
	Restored []string // ids of Missing whose file was restored, because auto_repair is set
	Deleted  []string // ids of Missing whose deletion by hand was adopted, because adopt_deletions is set
}
