"""Runs the recipe in `recipe.py`. A single row and each row of a batch must get their own ids."""

import recipe
from sqlalchemy import create_engine, select
from sqlalchemy.orm import Session

engine = create_engine("sqlite://")
recipe.Order.metadata.create_all(engine)
recipe.order(engine, [f"item {place}" for place in range(1000)])
with Session(engine) as session:
    ids = session.execute(select(recipe.Order.id).order_by(recipe.Order.id)).scalars().all()
assert len(set(ids)) == 1001 and ids[0] > 2**60, ids[:3]
recipe.order(engine, [])
with Session(engine) as session:
    assert len(session.execute(select(recipe.Order.id)).all()) == 1002, "only the lone row is added"
recipe.ids.close()
print("done")
