package varve

// Admin has the operations for operators and tools. Its methods read and change the configuration, return statistics,
// verify the store, rebuild its index, purge documents, read the exact bytes of documents, and convert between times
// and positions of the log. A program that only stores and reads memories needs none of them.
type Admin struct{ st *Store }

// Admin returns the operations for operators and tools.
func (st *Store) Admin() Admin { return Admin{st} }

// InPlace returns an error that matches ErrReplaced if the store's folder or its log was removed, renamed or replaced
// since the store was opened. Every write makes this check itself. A host calls InPlace if it only reads, or has not
// written for a while. A read-only store makes this check only during Watch, which ends with the error, and when a read
// finds damage.
func (ad Admin) InPlace() error {
	if err := ad.st.inner.Engine.BeginUse(); err != nil {
		return err
	}
	defer ad.st.inner.Engine.EndUse()
	return ad.st.inner.Engine.Log().Folder().InPlace()
}

// Commits returns the number of durable commits that calls of this Store have made: puts, deletions, batches and
// transactions of memories, assemblies and working memory. Commits that the store makes itself are not counted:
// adopted edits, deletions of expired memories, counted accesses. Commits may be called after Close. A host can
// compare the number with an earlier one, to learn whether a call that returned an error had already committed
// durably.
func (ad Admin) Commits() int64 { return ad.st.inner.Engine.Commits().Load() }
