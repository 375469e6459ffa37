// Package intake reads data that enters a store from outside.
//
//	source   a file, or stdin for -: completely up to a limit, or value by value; a signal ends
//	         the wait for it
//	values   one JSON object, an array of objects, or objects one after another, as memories
//	         or assemblies
//	vector   an embedding: a JSON list of numbers, or float32 values
//	import   Intake stores the items that package importer yields, in chunks of one commit,
//	         and reports the result for each item
//
// Input is checked before it is written: errors are those of package varve, with the position in
// the source.
package intake
