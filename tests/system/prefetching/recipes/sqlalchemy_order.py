"""What becomes of the recipe, which stands in `recipe.py`: a lone row and a batch have ids of their own."""

import recipe
from sqlalchemy import create_engine, select
from sqlalchemy.orm import Session

engine = create_engine("sqlite://")
recipe.Order.metadata.create_all(engine)
recipe.order(engine, [f"item {place}" for place in range(1000)])
with Session(engine) as session:
    ids = session.execute(select(recipe.Order.id).order_by(recipe.Order.id)).scalars().all()
assert len(set(ids)) == 1001 and ids[0] > 2**60, ids[:3]
recipe.ids.close()
print("done")
