package repair

import (
	"fmt"
	"hash/fnv"

	"github.com/varve-db/varve/errs"
)

// VerifyOptions are the options of Verify; the zero value verifies everything.
type VerifyOptions struct {
	// Part and Parts select a sample of the memories' files and of the archive: the files whose name's hash
	// falls into part number Part, counted from 1, of Parts equal parts. All parts together are everything.
	Part, Parts int
	// Workers is the number of goroutines that read files; 0 means 2, 1 the caller's goroutine
	// only.
	Workers int
	// Progress is called from time to time with the number of items done, and the number of all
	// items; total may grow.
	Progress func(done, total int64)
	// Summary is updated during the run, and complete at its end.
	Summary *Summary
}

// Validate returns the first invalid option as a *errs.FieldError, or nil.
func (o *VerifyOptions) Validate() error {
	switch {
	case o.Parts < 0 || o.Part < 0 || o.Part > o.Parts || o.Parts > 0 && o.Part == 0:
		return &errs.FieldError{Field: "sample", Value: fmt.Sprintf("%d/%d", o.Part, o.Parts), Limit: "n/t with 1 ≤ n ≤ t",
			Err: errs.ErrInvalid}
	case o.Workers < 0:
		return &errs.FieldError{Field: "workers", Value: fmt.Sprint(o.Workers), Limit: "1 or more", Err: errs.ErrInvalid}
	}
	return nil
}

// Chosen reports whether a file with this name belongs to the sample that Part and Parts select.
func (o *VerifyOptions) Chosen(name string) bool {
	if o.Parts < 2 {
		return true
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(name))
	return h.Sum64()%uint64(o.Parts) == uint64(o.Part-1)
}

// Summary has the numbers of the objects that a verification has read.
type Summary struct {
	Memories    int64            // memories whose files were compared
	Assemblies  int64            // assemblies whose files were compared
	Others      map[string]int64 // documents of other kinds whose files were compared, by folder; nil: none
	Scopes      int64            // scopes of working memory whose files were read
	Files       int64            // files read in memories/, assemblies/ and working/
	Bytes       int64            // bytes read in files, log and archive
	Segments    int64            // segments of the log that were read
	Archived    int64            // segments of the archive that were read
	Entries     int64            // entries of the log that were read
	Vectors     int64            // vectors in the vector files
	Quarantined int64            // files in quarantine/
	Findings    map[Kind]int64
	Worst       Severity // the worst severity among the findings
}
