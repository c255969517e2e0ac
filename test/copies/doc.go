// Package copies tests when a version is whole: real tools copy versions into the source of a real node, slowly, while a reader asks
// for every key. The tools are cp, rsync, aws, distcp and hdfs dfs -put, onto a local disk, S3 and HDFS.
//
// Two versions of a database have the same keys. No answer may lack a key, and no answer may be of an older version than the answer
// before. At the end every answer is of the version that was copied.
package copies
