package varve

// Admin has the operations for operators and tools: configuration and numbers, verification, the index, purges, the
// exact bytes of documents in their files, and positions of the log. A program that only keeps memories needs none of
// these.
type Admin struct{ st *Store }

// Admin returns the operations for operators and tools.
func (st *Store) Admin() Admin { return Admin{st} }

// InPlace returns an error that matches ErrReplaced if the store's folder is no longer the one that was opened: it was
// removed, renamed or replaced, or its log was. Every write checks this by itself; a host that has not written for a
// while, or that only reads, calls InPlace. A read-only store checks this by itself only in its watches, which end with
// the error, and when a read finds damage.
func (ad Admin) InPlace() error {
	if err := ad.st.inner.Engine.BeginUse(); err != nil {
		return err
	}
	defer ad.st.inner.Engine.EndUse()
	return ad.st.inner.Engine.Log().Folder().InPlace()
}

// Commits returns the number of commits that calls of this handle made durable: puts, deletions, batches and
// transactions of memories, assemblies and working memory. What the store does by itself does not count: adopted edits,
// deletions of expired memories, counted accesses. It may be called after Close, when a host decides whether an error
// came before or after a durable write.
func (ad Admin) Commits() int64 { return ad.st.inner.Engine.Commits().Load() }
