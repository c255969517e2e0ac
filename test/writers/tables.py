"""Writes tables of Delta Lake, Iceberg and Paimon, each as a database and as a version, and a version of plain files."""
import os
import sys

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable, write_deltalake
from pyiceberg.catalog.sql import SqlCatalog
from pypaimon import CatalogFactory, Schema

where = sys.argv[1]
rows = pa.table({"k": ["apple", "fig", "plum"], "v": ["red", "green", "blue"], "day": ["1", "1", "2"]})


def delta(path):
    write_deltalake(path, rows, partition_by=["day"])
    DeltaTable(path).delete("k = 'fig'")


catalog = SqlCatalog("test", uri="sqlite:///:memory:", warehouse="file://" + where)
catalog.create_namespace("n")


def iceberg(path):
    table = catalog.create_table("n." + os.path.basename(path), rows.schema, location="file://" + path)
    table.append(rows)
    table.delete("k = 'fig'")


def paimon(path):
    warehouse = path + ".warehouse"
    tables = CatalogFactory.create({"warehouse": warehouse})
    tables.create_database("n", True)
    options = {"file.format": "parquet"}
    tables.create_table("n.t", Schema.from_pyarrow_schema(rows.schema, partition_keys=["day"], options=options), False)
    builder = tables.get_table("n.t").new_batch_write_builder()
    write, commit = builder.new_write(), builder.new_commit()
    write.write_arrow(rows)
    commit.commit(write.prepare_commit())
    write.close()
    commit.close()
    os.rename(os.path.join(warehouse, "n.db", "t"), path)
    os.rmdir(os.path.join(warehouse, "n.db"))
    os.rmdir(warehouse)


for name, make in {"delta": delta, "iceberg": iceberg, "paimon": paimon}.items():
    make(os.path.join(where, name))
    os.makedirs(os.path.join(where, name + "-version"))
    make(os.path.join(where, name + "-version", "1"))
os.makedirs(os.path.join(where, "good", "1"))
pq.write_table(rows, os.path.join(where, "good", "1", "part-0.parquet"))
