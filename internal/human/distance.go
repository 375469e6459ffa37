package human

// Distance returns the number of bytes to insert, delete or replace to turn a into b (Levenshtein). It takes time and
// memory in proportion to len(a)*len(b).
func Distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			d := diagonal
			if a[i] != b[j] {
				d++
			}
			diagonal = row[j+1]
			row[j+1] = min(d, diagonal+1, row[j]+1)
		}
	}
	return row[len(b)]
}
