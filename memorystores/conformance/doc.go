// Package conformance tests a server of the Memory Stores API, this one or another, only by sending it HTTP
// requests:
//
//	func TestConformance(t *testing.T) {
//		conformance.Run(t, "http://127.0.0.1:7717", os.Getenv("KEY"))
//	}
//
// It creates stores and deletes them at the end; the key must permit that. Behavior that the description of the
// API leaves open, such as the order of lists and the status of a write to an archived store, is tested only as
// far as clients depend on it: a status in the 400s, and the form of the error.
//
//	run        Run, and the client
//	stores     stores: fields, limits, lists, archive
//	memories   memories: fields, limits, paths, lists, conditions
//	versions   versions: fields, filters, redaction
package conformance
