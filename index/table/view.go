package table

// View calls f with all bytes of the file. The bytes are valid during the call only and are not verified.
func (t *Table) View(f func(b []byte) error) error {
	return t.guard(func() error { return f(t.data) })
}
