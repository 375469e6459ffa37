//go:build (amd64 || arm64) && !purego

package vector

// assembly returns a kernel that calls the assembly routine f. f does not check its arguments; the kernel calls f only
// if there are at least one row and one dimension.
func assembly(f func(q *float32, rows *byte, d, n int, out *float32)) kernel {
	return func(q []float32, rows []byte, out []float32) {
		d, n := len(q), len(out)
		if d == 0 || n == 0 {
			clear(out)
			return
		}
		_ = rows[:4*d*n]
		f(&q[0], &rows[0], d, n, &out[0])
	}
}
