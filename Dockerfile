FROM node:24-slim AS build
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN npm ci --ignore-scripts
COPY tsconfig.json ./
COPY src src
RUN npx tsc && npm prune --omit=dev --ignore-scripts

FROM node:24-slim
ENV NODE_ENV=production HOLDOVER_LISTEN=0.0.0.0 HOLDOVER_DATA_DIR=/data
WORKDIR /app
COPY --from=build /app/package.json ./
COPY --from=build /app/node_modules node_modules
COPY --from=build /app/dist dist
COPY page page
RUN mkdir /data && chown node:node /data
USER node
VOLUME /data
EXPOSE 8188
HEALTHCHECK CMD ["node", "-e", "fetch('http://127.0.0.1:8188/healthz').then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
# Bound beyond loopback, it starts only with HOLDOVER_LOCAL_TOKEN (or HOLDOVER_ALLOW_INSECURE_BIND=1).
CMD ["node", "dist/main.js"]
