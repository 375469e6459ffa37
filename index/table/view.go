package table

// View lets f read the whole file. The bytes are valid only during the call and
// are not compared with their hashes.
func (t *Table) View(f func(b []byte) error) error {
	return t.guard(func() error { return f(t.data) })
}
