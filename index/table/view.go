package table

// View calls f with the bytes of the whole file. The bytes are valid only during the call, and are not verified.
func (t *Table) View(f func(b []byte) error) error {
	return t.guard(func() error { return f(t.data) })
}
